// Go's servers for the benchmark `net_peers`: print their port, and end with their standard input.
//
//	net echo|idle|http THREADS
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

func main() {
	threads, err := strconv.Atoi(os.Args[2])
	check(err)
	runtime.GOMAXPROCS(threads)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if os.Args[1] == "http" {
		go func() { check(http.Serve(listener, http.HandlerFunc(hello))) }()
	} else {
		go accept(listener)
	}
	io.Copy(io.Discard, os.Stdin)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Write([]byte("Hello, World!"))
}

func accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		check(err)
		go echo(connection)
	}
}

func echo(connection net.Conn) {
	defer connection.Close()
	var buffer [128]byte
	for {
		length, err := connection.Read(buffer[:])
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:length]); err != nil {
			return
		}
	}
}
