// expect: ECOMPILE
let x:
// source-repeat: Array< 50000
// source-repeat: number 1
// source-repeat: > 50000
