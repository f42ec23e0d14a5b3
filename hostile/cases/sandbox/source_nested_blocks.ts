// expect: ECOMPILE
// source-repeat: { 60000
// source-repeat: } 60000
