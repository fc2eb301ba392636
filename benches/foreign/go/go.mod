module ganger-workload

go 1.22
