package bench;

import java.util.HashMap;
import java.util.Map;

/**
 * Works off a filled queue or topic with a library of the JVM and prints how long
 * it took, as one line of JSON: Main MODE key=value…
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) {
        int code = 1;
        try {
            Job job = job(args);
            run(args[0], job);
            System.out.println(job.window.json());
            code = 0;
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
        }
        System.exit(code); // some pools have threads that nobody stops
    }

    private static Job job(String[] args) {
        Map<String, String> given = new HashMap<>();
        for (int i = 1; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            given.put(pair[0], pair[1]);
        }
        return new Job(given);
    }

    private static void run(String mode, Job job) throws Exception {
        switch (mode) {
            case "rabbit-spring" -> Rabbit.simple(job);
            case "rabbit-direct" -> Rabbit.direct(job);
            case "kafka-spring" -> Kafka.spring(job);
            case "kafka-parallel" -> Kafka.parallel(job);
            case "sqs-spring" -> Sqs.spring(job);
            default -> throw new IllegalArgumentException("unknown mode " + mode);
        }
    }
}
