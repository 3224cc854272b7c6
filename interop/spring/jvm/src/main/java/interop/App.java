package interop;

import java.util.Map;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** An application with listeners, as services have it; ${name} in its annotations is an argument of the program. */
final class App implements AutoCloseable {
    private final AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();

    App(Map<String, String> given, Seen seen, Class<?>... beans) {
        context.getEnvironment().getSystemProperties().putAll(given);
        context.registerBean(Seen.class, () -> seen);
        context.register(beans);
        context.refresh();
    }

    <T> T bean(Class<T> type) {
        return context.getBean(type);
    }

    @Override
    public void close() {
        context.close();
    }
}
