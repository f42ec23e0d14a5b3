// expect: ECOMPILE
// source-repeat: f( 60000
// source-repeat: ) 60000
