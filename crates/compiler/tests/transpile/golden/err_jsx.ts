export default () => {
  return <div className="x">hello {1}</div>;
};
