package bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Measures from the end of the warm-up to the last message: what came before made
 * the virtual machine compile, and says nothing.
 */
final class Window {
    private static final OperatingSystemMXBean SYSTEM = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final long warm;
    private final long messages;
    private final AtomicLong begun = new AtomicLong();
    private final AtomicLong ended = new AtomicLong();
    private final CountDownLatch done = new CountDownLatch(1);
    private volatile long wall;
    private volatile long cpu;

    Window(long warm, long messages) {
        this.warm = warm;
        this.messages = messages;
    }

    void begin() {
        if (begun.incrementAndGet() == warm + 1) {
            cpu = SYSTEM.getProcessCpuTime();
            wall = System.nanoTime();
        }
    }

    void end() {
        if (ended.incrementAndGet() == warm + messages) {
            wall = System.nanoTime() - wall;
            cpu = SYSTEM.getProcessCpuTime() - cpu;
            done.countDown();
        }
    }

    void await() throws InterruptedException {
        done.await();
    }

    String json() {
        return String.format("{\"messages\":%d,\"wall\":%d,\"cpu\":%d}", messages, wall, cpu);
    }
}
