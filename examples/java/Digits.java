import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Multiply two arrays without a copy, and predict digits with a network that Python has trained.
 *
 * <pre>javac -cp jna.jar Digits.java &amp;&amp; java -cp jna.jar:. -Djna.library.path=target/release Digits</pre>
 */
public final class Digits {
    /** The functions of the header that this program needs. Structures are written into memory of C. */
    public interface C extends Library {
        int mx_last_error(Pointer out);

        int mx_invoke(String op, Pointer args, long nargs, Pointer out);

        int mx_array_from_memory(
                Pointer data, long[] shape, long ndim, int dtype, Pointer deleter, Pointer context, LongByReference out);

        int mx_free(long handle);

        int mx_load(
                String path, Pointer arrays, long capacity, LongByReference len, Pointer names, long namesCapacity,
                LongByReference needed);

        int mx_save(String path, Pointer names, long[] arrays, long len);

        int mx_handle_count(LongByReference count);
    }

    private static final C LIB = Native.load("mxnet", C.class);
    private static final int FLOAT32 = 11;
    private static final int BOOL = 1, REAL = 3, TEXT = 5, INTS = 7, ARRAY = 9;
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
            } else if (value instanceof Boolean truth) {
                args.setInt(at + 8, BOOL);
                args.setLong(at + 24, truth ? 1 : 0);
            } else if (value instanceof Double real) {
                args.setInt(at + 8, REAL);
                args.setDouble(at + 24, real);
            } else if (value instanceof String word) {
                args.setInt(at + 8, TEXT);
                args.setPointer(at + 24, text(word, kept));
            } else if (value instanceof long[] ints) {
                Memory data = new Memory(8L * ints.length);
                data.write(0, ints, 0, ints.length);
                kept.add(data);
                args.setInt(at + 8, INTS);
                args.setLong(at + 16, ints.length);
                args.setPointer(at + 24, data);
            } else {
                throw new IllegalArgumentException("no argument can be a " + value.getClass());
            }
        }
        Memory room = new Memory(8);
        Memory out = new Memory(32);
        out.setLong(0, 32);
        out.setPointer(8, room);
        out.setLong(16, 1);
        check(LIB.mx_invoke(op, args, given.length, out));
        java.lang.ref.Reference.reachabilityFence(kept);
        return room.getLong(0);
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

    private static Map<String, Long> load(String path) {
        Memory arrays = new Memory(32 * 8), names = new Memory(2048);
        LongByReference len = new LongByReference(), needed = new LongByReference();
        check(LIB.mx_load(path, arrays, 32, len, names, 2048, needed));
        Map<String, Long> found = new LinkedHashMap<>();
        String[] all = names.getString(0, "UTF-8").split("\n");
        for (int i = 0; i < all.length; i++) {
            found.put(all[i], arrays.getLong(8L * i));
        }
        return found;
    }

    private static long then(long images, long x, String op, Object... more) {
        Object[] args = new Object[more.length + 1];
        args[0] = x;
        System.arraycopy(more, 0, args, 1, more.length);
        long y = call(op, args);
        if (x != images) {
            check(LIB.mx_free(x));
        }
        return y;
    }

    private static long predict(Map<String, Long> net) {
        long images = net.get("images"), x = images;
        long[] three = {3, 3}, one = {1, 1}, two = {2, 2};
        for (String at : new String[] {"conv1", "conv2"}) {
            x = then(images, x, "convolution", net.get(at + ".weight"), new Named("kernel", three), new Named("pad", one),
                    new Named("no_bias", true));
            x = then(images, x, "batch_norm", net.get(at + ".gamma"), net.get(at + ".beta"), net.get(at + ".running_mean"),
                    net.get(at + ".running_var"), new Named("eps", 1e-5), new Named("fix_gamma", false));
            x = then(images, x, "activation", new Named("act_type", "relu"));
        }
        x = then(images, x, "pooling", new Named("kernel", two), new Named("pool_type", "max"), new Named("stride", two));
        x = then(images, x, "fully_connected", net.get("dense1.weight"), net.get("dense1.bias"), new Named("no_bias", false));
        x = then(images, x, "activation", new Named("act_type", "relu"));
        return then(images, x, "fully_connected", net.get("dense2.weight"), net.get("dense2.bias"), new Named("no_bias", false));
    }

    public static void main(String[] args) {
        multiply();
        if (args.length == 2) {
            Map<String, Long> net = load(args[0]);
            long scores = predict(net);
            List<Memory> kept = new ArrayList<>();
            Memory names = new Memory(8);
            names.setPointer(0, text("scores", kept));
            check(LIB.mx_save(args[1], names, new long[] {scores}, 1));
            check(LIB.mx_free(scores));
            for (long handle : net.values()) {
                check(LIB.mx_free(handle));
            }
        }
        LongByReference left = new LongByReference();
        check(LIB.mx_handle_count(left));
        System.out.println("handles left: " + left.getValue());
    }
}
