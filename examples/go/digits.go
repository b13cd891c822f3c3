// Multiply two arrays without a copy, and predict digits with a network that Python has exported.
//
//	CGO_CFLAGS="-I$PWD/crates/ffi/c/include" CGO_LDFLAGS="-L$PWD/target/release -lmxnet" \
//	    go run examples/go/digits.go net-symbol.json net-0000.params images.safetensors scores.safetensors
//
// HybridBlock.export writes the first two files. The third has one array, the images.
package main

/*
#include <mxnet.h>
#include <stdlib.h>

static void set_integer(mx_arg *arg, int64_t x) { arg->value.integer = x; }
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

// Memory is memory of C, to which structures of the library may point.
type Memory []unsafe.Pointer

func (m *Memory) keep(p unsafe.Pointer) unsafe.Pointer {
	*m = append(*m, p)
	return p
}

func (m *Memory) text(s string) *C.char { return (*C.char)(m.keep(unsafe.Pointer(C.CString(s)))) }

func (m *Memory) free() {
	for _, p := range *m {
		C.free(p)
	}
}

// output is a structure for one output.
func (m *Memory) output() C.mx_outputs {
	handle := (*C.mx_handle)(m.keep(C.calloc(1, C.sizeof_mx_handle)))
	return C.mx_outputs{size: C.sizeof_mx_outputs, arrays: handle, capacity: 1}
}

// call runs an operator with one output.
func call(op string, args ...any) Array {
	var memory Memory
	defer memory.free()
	block := memory.keep(C.calloc(C.size_t(len(args)), C.sizeof_mx_arg))
	list := unsafe.Slice((*C.mx_arg)(block), len(args))
	for i, given := range args {
		arg := &list[i]
		if named, ok := given.(Named); ok {
			arg.name, given = memory.text(named.name), named.value
		}
		switch x := given.(type) {
		case Array:
			arg.kind = C.MX_ARG_ARRAY
			C.set_array(arg, C.mx_handle(x))
		case int:
			arg.kind = C.MX_ARG_INT
			C.set_integer(arg, C.int64_t(x))
		default:
			panic(fmt.Sprintf("an argument cannot be a %T", x))
		}
	}
	out := memory.output()
	check(C.mx_invoke(memory.text(op), (*C.mx_arg)(block), C.size_t(len(args)), &out))
	return Array(*out.arrays)
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

// load reads the only array of a file.
func load(path string) Array {
	var memory Memory
	defer memory.free()
	var handle C.mx_handle
	var name [256]C.char
	var num, lenBytes C.size_t
	check(C.mx_load(memory.text(path), &handle, 1, &num, &name[0], 256, &lenBytes))
	if handle == 0 {
		fmt.Fprintf(os.Stderr, "%s has %d arrays, 1 is needed\n", path, num)
		os.Exit(1)
	}
	return Array(handle)
}

// predict runs an exported network with one argument and one result.
func predict(symbolFile, paramFile string, images Array) Array {
	var memory Memory
	defer memory.free()
	var graph C.mx_handle
	check(C.mx_graph_load(memory.text(symbolFile), memory.text(paramFile), &graph))
	argument := C.mx_handle(images)
	out := memory.output()
	check(C.mx_graph_run(graph, &argument, 1, &out))
	check(C.mx_free(graph))
	return Array(*out.arrays)
}

// digits returns the digit of each row of scores, (n, 10).
func digits(scores Array) []int64 {
	found := call("argmax", scores, Named{"axis", 1})
	defer free(found)
	var lenBytes C.size_t
	check(C.mx_array_len_bytes(C.mx_handle(found), &lenBytes))
	result := make([]int64, lenBytes/8)
	check(C.mx_array_read(C.mx_handle(found), unsafe.Pointer(unsafe.SliceData(result)), lenBytes))
	return result
}

// save writes one array to a file.
func save(path, name string, x Array) {
	var memory Memory
	defer memory.free()
	names := (**C.char)(memory.keep(C.calloc(1, C.size_t(unsafe.Sizeof(uintptr(0))))))
	*names = memory.text(name)
	handle := C.mx_handle(x)
	check(C.mx_save(memory.text(path), names, &handle, 1))
}

func main() {
	runtime.LockOSThread()
	multiply()
	if len(os.Args) == 5 {
		images := load(os.Args[3])
		scores := predict(os.Args[1], os.Args[2], images)
		fmt.Println("digits:", strings.Trim(fmt.Sprint(digits(scores)), "[]"))
		save(os.Args[4], "scores", scores)
		free(scores)
		free(images)
	}
	var left C.size_t
	check(C.mx_handle_count(&left))
	fmt.Println("handles left:", left)
}
