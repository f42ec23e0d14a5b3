// expect: ECOMPILE
let x:
// source-repeat: Array< 25000
// source-repeat: number 1
// source-repeat: > 25000
