module ganger/net

go 1.22
