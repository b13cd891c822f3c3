import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import java.util.ArrayList;
import java.util.List;

/**
 * Multiply two arrays without a copy, and predict digits with a network that Python has exported.
 *
 * <pre>
 * javac -cp jna.jar Digits.java
 * java -cp jna.jar:. -Djna.library.path=target/release Digits \
 *     net-symbol.json net-0000.params images.safetensors scores.safetensors
 * </pre>
 *
 * `HybridBlock.export` writes the first two files. The third has one array, the images.
 */
public final class Digits {
    /** The functions of the header that this program needs. Structures are written into memory of C. */
    public interface C extends Library {
        int mx_last_error(Pointer out);

        int mx_invoke(String op, Pointer args, long nargs, Pointer out);

        int mx_array_from_memory(
                Pointer data, long[] shape, long ndim, int dtype, Pointer deleter, Pointer context, LongByReference out);

        int mx_array_len_bytes(long array, LongByReference lenBytes);

        int mx_array_read(long array, long[] data, long lenBytes);

        int mx_graph_load(String symbolFile, String paramFile, LongByReference graph);

        int mx_graph_run(long graph, long[] arrays, long len, Pointer out);

        int mx_free(long handle);

        int mx_load(
                String path, Pointer arrays, long capacity, LongByReference len, Pointer names, long namesCapacity,
                LongByReference needed);

        int mx_save(String path, Pointer names, long[] arrays, long len);

        int mx_handle_count(LongByReference count);
    }

    private static final C LIB = Native.load("mxnet", C.class);
    private static final int FLOAT32 = 11;
    private static final int INT = 2, ARRAY = 9;
    private static final int ARG_BYTES = 32;

    private record Named(String name, Object value) {}

    private static void check(int status) {
        if (status != 0) {
            Memory fault = new Memory(40);
            fault.clear();
            fault.setLong(0, 40);
            LIB.mx_last_error(fault);
            throw new IllegalStateException(fault.getPointer(24).getString(0, "UTF-8"));
        }
    }

    /** Calls an operator with one output. Arguments are handles (Long), or have a name. */
    private static long call(String op, Object... given) {
        List<Memory> kept = new ArrayList<>();
        Memory args = new Memory((long) ARG_BYTES * given.length);
        args.clear();
        for (int i = 0; i < given.length; i++) {
            long at = (long) ARG_BYTES * i;
            Object value = given[i];
            if (value instanceof Named named) {
                args.setPointer(at, text(named.name(), kept));
                value = named.value();
            }
            if (value instanceof Long handle) {
                args.setInt(at + 8, ARRAY);
                args.setLong(at + 24, handle);
            } else if (value instanceof Integer integer) {
                args.setInt(at + 8, INT);
                args.setLong(at + 24, integer);
            } else {
                throw new IllegalArgumentException("no argument can be a " + value.getClass());
            }
        }
        Memory result = new Memory(8);
        check(LIB.mx_invoke(op, args, given.length, output(result)));
        java.lang.ref.Reference.reachabilityFence(kept);
        return result.getLong(0);
    }

    /** A structure for one output, whose handle is written to `result`. */
    private static Memory output(Memory result) {
        Memory out = new Memory(32);
        out.setLong(0, 32);
        out.setPointer(8, result);
        out.setLong(16, 1);
        return out;
    }

    private static Pointer text(String text, List<Memory> kept) {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        Memory memory = new Memory(bytes.length + 1L);
        memory.write(0, bytes, 0, bytes.length);
        memory.setByte(bytes.length, (byte) 0);
        kept.add(memory);
        return memory;
    }

    /** c = a * b, all three in memory of this program. */
    private static void multiply() {
        float[][] values = {{1, 2, 3, 4, 5, 6}, {10, 10, 10, 0.5f, 0.5f, 0.5f}, new float[6]};
        Memory[] data = new Memory[3];
        long[] x = new long[3];
        for (int i = 0; i < 3; i++) {
            data[i] = new Memory(24);
            data[i].write(0, values[i], 0, 6);
            LongByReference handle = new LongByReference();
            check(LIB.mx_array_from_memory(data[i], new long[] {2, 3}, 2, FLOAT32, null, null, handle));
            x[i] = handle.getValue();
        }
        call("multiply", x[0], x[1], new Named("out", x[2]));
        StringBuilder shown = new StringBuilder("product:");
        for (float c : data[2].getFloatArray(0, 6)) {
            shown.append(' ').append(c == Math.rint(c) ? String.valueOf((long) c) : String.valueOf(c));
        }
        System.out.println(shown);
        for (long handle : x) {
            check(LIB.mx_free(handle));
        }
    }

    /** The only array of a file. */
    private static long load(String path) {
        Memory array = new Memory(8), name = new Memory(256);
        array.clear();
        LongByReference len = new LongByReference(), needed = new LongByReference();
        check(LIB.mx_load(path, array, 1, len, name, name.size(), needed));
        if (array.getLong(0) == 0) {
            throw new IllegalArgumentException(path + " has " + len.getValue() + " arrays, 1 is needed");
        }
        return array.getLong(0);
    }

    /** Runs an exported network with one argument and one result. */
    private static long predict(String symbolFile, String paramFile, long images) {
        LongByReference graph = new LongByReference();
        check(LIB.mx_graph_load(symbolFile, paramFile, graph));
        Memory scores = new Memory(8);
        check(LIB.mx_graph_run(graph.getValue(), new long[] {images}, 1, output(scores)));
        check(LIB.mx_free(graph.getValue()));
        return scores.getLong(0);
    }

    /** The digit of each row of scores, (n, 10). */
    private static long[] digits(long scores) {
        long found = call("argmax", scores, new Named("axis", 1));
        LongByReference lenBytes = new LongByReference();
        check(LIB.mx_array_len_bytes(found, lenBytes));
        long[] result = new long[(int) (lenBytes.getValue() / 8)];
        check(LIB.mx_array_read(found, result, lenBytes.getValue()));
        check(LIB.mx_free(found));
        return result;
    }

    public static void main(String[] args) {
        multiply();
        if (args.length == 4) {
            long images = load(args[2]);
            long scores = predict(args[0], args[1], images);
            StringBuilder shown = new StringBuilder("digits:");
            for (long digit : digits(scores)) {
                shown.append(' ').append(digit);
            }
            System.out.println(shown);
            List<Memory> kept = new ArrayList<>();
            Memory names = new Memory(8);
            names.setPointer(0, text("scores", kept));
            check(LIB.mx_save(args[3], names, new long[] {scores}, 1));
            java.lang.ref.Reference.reachabilityFence(kept);
            check(LIB.mx_free(scores));
            check(LIB.mx_free(images));
        }
        LongByReference left = new LongByReference();
        check(LIB.mx_handle_count(left));
        System.out.println("handles left: " + left.getValue());
    }
}
