// expect: ECOMPILE
// source-repeat: [ 150000
// source-repeat: ] 150000
