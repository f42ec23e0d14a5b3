//! From a Cypher query to SQL over the tables of `store`.
