const factor = args.factor;
namespace Maths { export const twice = () => factor * 2; }
Maths.twice()
