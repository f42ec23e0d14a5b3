class A { accessor x = 1; }
export default A;
