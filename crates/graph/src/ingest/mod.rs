//! From git objects and files to facts.
