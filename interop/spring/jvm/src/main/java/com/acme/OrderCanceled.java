package com.acme;

/** Known by a mapped id, not by its class. */
public record OrderCanceled(String id, String reason) {}
