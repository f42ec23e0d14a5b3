// expect: ECOMPILE
export default () =>
// source-repeat: `${ 50000
// source-repeat: 1 1
// source-repeat: }` 50000
