//! Names that the code graph does not have are refused before a server is asked.

use serde_json::json;
use tgp_contract::{Graph, GraphQuery};
use tgp_graph_bolt::{BoltGraph, BoltOptions};

use crate::support::{Project, run};

#[test]
fn a_misspelt_name_is_refused_without_asking_the_server() {
    let project = Project::new();
    // Nothing listens there.
    let server = BoltOptions::parse("bolt://127.0.0.1:1/x").unwrap();
    let bolt = run(BoltGraph::open(project.options(), server)).unwrap();
    for (query, kind) in [
        ("MATCH (f:Fil) RETURN f.path", "UnknownLabel"),
        ("MATCH (f:File)-[:IMPORT]->(g) RETURN g", "UnknownRelationshipType"),
        ("MATCH (f:File) RETURN f.pth", "UnknownProperty"),
        ("MATCH (f:File) RETURN f.path ORDER BY f.lnes", "UnknownProperty"),
    ] {
        let error = run(bolt.query(GraphQuery::new(query))).unwrap_err();
        assert_eq!(error.details["kind"], json!(kind), "{query}: {error}");
    }
}
