module ganger/channels

go 1.22
