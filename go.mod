module numaopt

go 1.26.8
