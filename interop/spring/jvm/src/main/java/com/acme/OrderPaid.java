package com.acme;

/** What a team's events look like. */
public record OrderPaid(String id, long cents) implements java.io.Serializable {}
