// expect: ECOMPILE
export default () => 1
// source-repeat: +1 120000
