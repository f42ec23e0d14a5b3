// expect: ECOMPILE
export default
// source-repeat: ()=> 60000
// source-repeat: 1 1
