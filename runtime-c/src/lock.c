#include "nmo.h"
#include "sys.h"

void nmo_lock_take(nmo_lock *lock) {
    int spins = 0;
    while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
        if (++spins > 64)
            nmo_sys_yield();
}
