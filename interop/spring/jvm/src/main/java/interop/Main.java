package interop;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * Writes what Spring writes, or reads with Spring and prints what its listeners got, a
 * line of JSON for each message: Main MODE key=value…
 */
public final class Main {
    /** How long listeners wait for what they are to get. */
    static final Duration PATIENCE = Duration.ofMinutes(2);

    private Main() {}

    public static void main(String[] args) {
        int code = 1;
        try {
            Map<String, String> given = new HashMap<>();
            for (int i = 1; i < args.length; i++) {
                String[] pair = args[i].split("=", 2);
                given.put(pair[0], pair[1]);
            }
            watch(args[0]);
            run(args[0], given);
            code = 0;
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
        }
        System.exit(code); // some pools have threads that nobody stops
    }

    /** Ends the program where it hangs, a stop or a send that never returns, and tells what each thread does. */
    private static void watch(String mode) {
        Duration limit = PATIENCE.plusSeconds(20);
        Thread watch = new Thread(() -> {
            try {
                Thread.sleep(limit.toMillis());
            } catch (InterruptedException e) {
                return;
            }
            System.err.println(mode + " still runs after " + limit + ":");
            Thread.getAllStackTraces().forEach((thread, stack) -> {
                System.err.println(thread);
                for (StackTraceElement at : stack) {
                    System.err.println("\tat " + at);
                }
            });
            Runtime.getRuntime().halt(1);
        }, "watch");
        watch.setDaemon(true);
        watch.start();
    }

    private static void run(String mode, Map<String, String> given) throws Exception {
        switch (mode) {
            case "rabbit-write" -> RabbitWrites.run(given);
            case "rabbit-fail" -> RabbitFails.run(given);
            case "rabbit-read" -> RabbitReads.run(given);
            case "kafka-write" -> KafkaWrites.run(given);
            case "kafka-fail" -> KafkaFails.run(given);
            case "kafka-retry" -> KafkaRetries.run(given);
            case "kafka-read" -> KafkaReads.run(given);
            case "sqs-write" -> Sqs.write(given);
            case "sqs-read" -> Sqs.read(given);
            default -> throw new IllegalArgumentException("unknown mode " + mode);
        }
    }
}
