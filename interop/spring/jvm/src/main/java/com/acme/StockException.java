package com.acme;

/** What a listener's failure is caused by. */
public final class StockException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public StockException(String message) {
        super(message);
    }
}
