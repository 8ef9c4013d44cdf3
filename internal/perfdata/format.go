package perfdata

// What is in a record's sample, bit by bit of perf_event_attr.sample_type
// (linux/perf_event.h, enum perf_event_sample_format).
const (
	sampleIP = 1 << iota
	sampleTID
	sampleTime
	sampleAddr
	sampleRead
	sampleCallchain
	sampleID
	sampleCPU
	samplePeriod
	sampleStreamID
	sampleRaw
	sampleBranchStack
	sampleRegsUser
	sampleStackUser
	sampleWeight
	sampleDataSrc
	sampleIdentifier
	sampleTransaction
	sampleRegsIntr
	samplePhysAddr
	sampleAux
	sampleCgroup
	sampleDataPageSize
	sampleCodePageSize
	sampleWeightStruct
	sampleEnd // the first bit that is not known
)

// Bits of perf_event_attr.read_format.
const (
	readEnabled = 1 << iota
	readRunning
	readID
	readGroup
	readLost
)

const (
	branchHWIndex  = 1 << 17 // of branch_sample_type: an index before the entries
	branchCounters = 1 << 19 // a word of counters for every entry, after them
)

// Flags of perf_event_attr that are looked at, by bit number.
const (
	flagExcludeKernel = 5
	flagExcludeHV     = 6
	flagFreq          = 10
	flagSampleIDAll   = 18
	flagUseClockID    = 25
)

// Types of records: the kernel's below 64 (enum perf_event_type), perf's own
// from 64 on (tools/lib/perf/include/perf/event.h).
const (
	recMmap             = 1
	recLost             = 2
	recComm             = 3
	recExit             = 4
	recThrottle         = 5
	recUnthrottle       = 6
	recFork             = 7
	recSample           = 9
	recMmap2            = 10
	recAux              = 11
	recLostSamples      = 13
	recAttr             = 64
	recTracingData      = 66
	recAuxtraceInfo     = 70
	recAuxtrace         = 71
	recEventUpdate      = 78
	recTimeConv         = 79
	recFeature          = 80
	recCompressed       = 81
	recCompressed2      = 83
	recBPFMetadata      = 84
	recLastUser         = recBPFMetadata
	miscMmapData        = 1 << 13
	miscMmapBuildID     = 1 << 14
	miscCommExec        = 1 << 13
	miscCPUMode         = 7
	lostByFilter        = 1 << 15 // LOST_SAMPLES: dropped by a BPF filter, on purpose
	auxTruncated        = 1
	auxtraceArmSPE      = 4
	auxtraceRecordBytes = 48
)

// recordNames are perf's own names of records, for messages.
var recordNames = map[uint32]string{
	1: "MMAP", 2: "LOST", 3: "COMM", 4: "EXIT", 5: "THROTTLE", 6: "UNTHROTTLE", 7: "FORK", 8: "READ", 9: "SAMPLE", 10: "MMAP2",
	11: "AUX", 12: "ITRACE_START", 13: "LOST_SAMPLES", 14: "SWITCH", 15: "SWITCH_CPU_WIDE", 16: "NAMESPACES", 17: "KSYMBOL",
	18: "BPF_EVENT", 19: "CGROUP", 20: "TEXT_POKE", 21: "AUX_OUTPUT_HW_ID", 22: "CALLCHAIN_DEFERRED",
	64: "HEADER_ATTR", 65: "EVENT_TYPE", 66: "TRACING_DATA", 67: "BUILD_ID", 68: "FINISHED_ROUND", 69: "ID_INDEX",
	70: "AUXTRACE_INFO", 71: "AUXTRACE", 72: "AUXTRACE_ERROR", 73: "THREAD_MAP", 74: "CPU_MAP", 75: "STAT_CONFIG", 76: "STAT",
	77: "STAT_ROUND", 78: "EVENT_UPDATE", 79: "TIME_CONV", 80: "FEATURE", 81: "COMPRESSED", 82: "FINISHED_INIT",
	83: "COMPRESSED2", 84: "BPF_METADATA",
}

// Feature sections of the header, by bit.
const (
	featHostname     = 3
	featOSRelease    = 4
	featVersion      = 5
	featArch         = 6
	featNrCPUs       = 7
	featCPUDesc      = 8
	featCPUID        = 9
	featCmdline      = 11
	featEventDesc    = 12
	featNUMATopology = 14
	featMemTopology  = 22
	featClockData    = 29
)
