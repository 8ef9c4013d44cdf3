package pmu

/*
#cgo LDFLAGS: -l:libpfm.a
#include <perfmon/pfmlib_perf_event.h>
#include <stdlib.h>
#include <string.h>

// LIBPFM_ENCODE_INACTIVE: events of processors other than this one, too.
static int start(void) {
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	int ret = pfm_initialize();
	unsetenv("LIBPFM_ENCODE_INACTIVE");
	return ret;
}

static int encode(const char *name, unsigned long long *config, unsigned long long *config1) {
	struct perf_event_attr attr;
	pfm_perf_encode_arg_t arg;
	memset(&attr, 0, sizeof attr);
	memset(&arg, 0, sizeof arg);
	arg.size = sizeof arg;
	arg.attr = &attr;
	int ret = pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
	*config = attr.config;
	*config1 = attr.config1;
	return ret;
}

// code is the event's own number, for devices that this machine need not have.
static int code(const char *name, unsigned long long *config) {
	pfm_pmu_encode_arg_t arg;
	memset(&arg, 0, sizeof arg);
	arg.size = sizeof arg;
	int ret = pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_NONE, &arg);
	if (ret == PFM_SUCCESS && arg.count > 0)
		*config = arg.codes[0];
	free(arg.codes);
	return ret;
}
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

var startPfm = sync.OnceValue(func() C.int { return C.start() })

// pfmCode asks libpfm4 for the number of an uncore event.
func pfmCode(name string) (config uint64, err error) {
	if ret := startPfm(); ret != C.PFM_SUCCESS {
		return 0, fmt.Errorf("libpfm4: %s", C.GoString(C.pfm_strerror(ret)))
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var c C.ulonglong
	if ret := C.code(text, &c); ret != C.PFM_SUCCESS {
		return 0, fmt.Errorf("libpfm4: %s: %s", name, C.GoString(C.pfm_strerror(ret)))
	}
	return uint64(c), nil
}

// pfmEncode asks libpfm4 for an event, "skx::MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=3".
func pfmEncode(name string) (config, config1 uint64, err error) {
	if ret := startPfm(); ret != C.PFM_SUCCESS {
		return 0, 0, fmt.Errorf("libpfm4: %s", C.GoString(C.pfm_strerror(ret)))
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var c, c1 C.ulonglong
	if ret := C.encode(text, &c, &c1); ret != C.PFM_SUCCESS {
		return 0, 0, fmt.Errorf("libpfm4: %s: %s", name, C.GoString(C.pfm_strerror(ret)))
	}
	return uint64(c), uint64(c1), nil
}
