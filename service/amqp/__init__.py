"""AMQP 1.0 (OASIS, 29 October 2012) as bytes: types, performatives, frames, messages; no I/O, for servers and clients.

Section numbers in the comments below are those of the standard.
"""
