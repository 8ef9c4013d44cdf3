/* kmp_if: the entry of libomp 16 for an `if` clause, for a libomp that lacks it. */
#include <stddef.h>

typedef void micro_fn(int *gtid, int *btid, ...);
void __kmpc_fork_call(void *loc, int argc, micro_fn *fn, ...);
void __kmpc_serialized_parallel(void *loc, int gtid);
void __kmpc_end_serialized_parallel(void *loc, int gtid);
int __kmpc_global_thread_num(void *loc);

void __kmpc_fork_call_if(void *loc, int argc, micro_fn *fn, int cond, void *args) {
    int gtid = __kmpc_global_thread_num(loc), zero = 0;
    if (cond && args) {
        __kmpc_fork_call(loc, argc, fn, args);
    } else if (cond) {
        __kmpc_fork_call(loc, argc, fn);
    } else {
        __kmpc_serialized_parallel(loc, gtid);
        if (args)
            fn(&gtid, &zero, args);
        else
            fn(&gtid, &zero);
        __kmpc_end_serialized_parallel(loc, gtid);
    }
}
