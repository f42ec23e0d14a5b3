// expect: ECOMPILE
// source-repeat: [ 100000
// source-repeat: ] 100000
