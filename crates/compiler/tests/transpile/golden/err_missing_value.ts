// the unit test plan's example
const x = ;
