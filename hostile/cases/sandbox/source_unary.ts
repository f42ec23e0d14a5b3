// expect: ECOMPILE
export default () => 1 +
// source-repeat: ! 200000
// source-repeat: 1 1
