module ganger/locks

go 1.22
