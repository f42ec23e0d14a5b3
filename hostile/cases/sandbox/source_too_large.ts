// expect: EVALIDATION
export default () => 1;
// source-repeat: /*-------------------------------------------------------------*/ 40000
