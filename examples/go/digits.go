// Multiply two arrays without a copy, and predict digits with a network that Python has trained.
//
//	CGO_CFLAGS="-I$PWD/crates/ffi/c/include" CGO_LDFLAGS="-L$PWD/target/release -lmxnet" go run examples/go/digits.go
package main

/*
#include <mxnet.h>
#include <stdlib.h>
#include <string.h>

static void set_integer(mx_arg *arg, int64_t x) { arg->value.integer = x; }
static void set_real(mx_arg *arg, double x) { arg->value.real = x; }
static void set_text(mx_arg *arg, const char *x) { arg->value.text = x; }
static void set_ints(mx_arg *arg, const int64_t *x) { arg->value.ints = x; }
static void set_array(mx_arg *arg, mx_handle x) { arg->value.array = x; }
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"
)

// Array is a handle of the library.
type Array C.mx_handle

// check ends the program with the message of the library if a call has failed. Errors belong to the thread, so callers
// stay on theirs.
func check(status C.int32_t) {
	if status == C.MX_OK {
		return
	}
	fault := C.mx_error{size: C.sizeof_mx_error}
	C.mx_last_error(&fault)
	fmt.Fprintln(os.Stderr, C.GoString(fault.message))
	os.Exit(1)
}

// Named is an argument that is given by name.
type Named struct {
	name  string
	value any
}

// call runs an operator with one output. Everything it points to is in memory of C.
func call(op string, args ...any) Array {
	var owned []unsafe.Pointer
	keep := func(p unsafe.Pointer) unsafe.Pointer {
		owned = append(owned, p)
		return p
	}
	text := func(s string) *C.char { return (*C.char)(keep(unsafe.Pointer(C.CString(s)))) }
	block := keep(C.calloc(C.size_t(len(args)), C.sizeof_mx_arg))
	list := unsafe.Slice((*C.mx_arg)(block), len(args))
	for i, given := range args {
		arg := &list[i]
		if named, ok := given.(Named); ok {
			arg.name, given = text(named.name), named.value
		}
		switch x := given.(type) {
		case Array:
			arg.kind = C.MX_ARG_ARRAY
			C.set_array(arg, C.mx_handle(x))
		case bool:
			arg.kind = C.MX_ARG_BOOL
			if x {
				C.set_integer(arg, 1)
			}
		case float64:
			arg.kind = C.MX_ARG_REAL
			C.set_real(arg, C.double(x))
		case string:
			arg.kind = C.MX_ARG_TEXT
			C.set_text(arg, text(x))
		case []int64:
			arg.kind, arg.len = C.MX_ARG_INTS, C.size_t(len(x))
			data := keep(C.malloc(C.size_t(8 * len(x))))
			copy(unsafe.Slice((*int64)(data), len(x)), x)
			C.set_ints(arg, (*C.int64_t)(data))
		default:
			panic(fmt.Sprintf("an argument cannot be a %T", x))
		}
	}
	room := (*C.mx_handle)(keep(C.calloc(1, C.sizeof_mx_handle)))
	out := C.mx_outputs{size: C.sizeof_mx_outputs, arrays: room, capacity: 1}
	name := text(op)
	check(C.mx_invoke(name, (*C.mx_arg)(block), C.size_t(len(args)), &out))
	result := Array(*room)
	for _, p := range owned {
		C.free(p)
	}
	return result
}

func free(x Array) { check(C.mx_free(C.mx_handle(x))) }

// multiply computes c = a * b, all three in memory of this program.
func multiply() {
	shape := []C.int64_t{2, 3}
	values := [3][6]float32{{1, 2, 3, 4, 5, 6}, {10, 10, 10, 0.5, 0.5, 0.5}}
	var data [3]unsafe.Pointer
	var x [3]Array
	for i := range x {
		// The library keeps the address, so the memory is C's.
		data[i] = C.malloc(24)
		copy(unsafe.Slice((*float32)(data[i]), 6), values[i][:])
		var handle C.mx_handle
		check(C.mx_array_from_memory(data[i], &shape[0], 2, C.MX_FLOAT32, nil, nil, &handle))
		x[i] = Array(handle)
	}
	call("multiply", x[0], x[1], Named{"out", x[2]})
	fmt.Println("product:", strings.Trim(fmt.Sprint(unsafe.Slice((*float32)(data[2]), 6)), "[]"))
	for i := range x {
		free(x[i])
		C.free(data[i])
	}
}

// load reads the arrays of a file.
func load(path string) map[string]Array {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var arrays [32]C.mx_handle
	var names [2048]C.char
	var num, lenBytes C.size_t
	check(C.mx_load(name, &arrays[0], 32, &num, &names[0], 2048, &lenBytes))
	found := map[string]Array{}
	for i, name := range strings.Split(C.GoString(&names[0]), "\n") {
		found[name] = Array(arrays[i])
	}
	return found
}

func predict(net map[string]Array) Array {
	x := net["images"]
	then := func(op string, args ...any) {
		y := call(op, append([]any{x}, args...)...)
		if x != net["images"] {
			free(x)
		}
		x = y
	}
	for _, at := range []string{"conv1", "conv2"} {
		then("convolution", net[at+".weight"], Named{"kernel", []int64{3, 3}}, Named{"pad", []int64{1, 1}}, Named{"no_bias", true})
		then("batch_norm", net[at+".gamma"], net[at+".beta"], net[at+".running_mean"], net[at+".running_var"],
			Named{"eps", 1e-5}, Named{"fix_gamma", false})
		then("activation", Named{"act_type", "relu"})
	}
	then("pooling", Named{"kernel", []int64{2, 2}}, Named{"pool_type", "max"}, Named{"stride", []int64{2, 2}})
	then("fully_connected", net["dense1.weight"], net["dense1.bias"], Named{"no_bias", false})
	then("activation", Named{"act_type", "relu"})
	then("fully_connected", net["dense2.weight"], net["dense2.bias"], Named{"no_bias", false})
	return x
}

func main() {
	runtime.LockOSThread()
	multiply()
	if len(os.Args) == 3 {
		net := load(os.Args[1])
		scores := predict(net)
		path, name := C.CString(os.Args[2]), C.CString("scores")
		names := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof(name))))
		*names = name
		handle := C.mx_handle(scores)
		check(C.mx_save(path, names, &handle, 1))
		for _, p := range []unsafe.Pointer{unsafe.Pointer(path), unsafe.Pointer(name), unsafe.Pointer(names)} {
			C.free(p)
		}
		free(scores)
		for _, x := range net {
			free(x)
		}
	}
	var left C.size_t
	check(C.mx_handle_count(&left))
	fmt.Println("handles left:", left)
}
