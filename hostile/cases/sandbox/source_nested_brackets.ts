// expect: ECOMPILE | EVALIDATION
// source-repeat: [ 150000
// source-repeat: ] 150000
