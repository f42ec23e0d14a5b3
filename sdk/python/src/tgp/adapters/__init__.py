"""Adapters: the kernel's tools for the frameworks of others. Each imports its framework only when it is imported."""
