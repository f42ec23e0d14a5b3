const größe = 1; const größe = 2;
export default größe;
