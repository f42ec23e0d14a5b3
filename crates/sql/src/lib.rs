//! SQLite, PostgreSQL and MySQL behind one transactional session.
#![forbid(unsafe_code)]
