const fib = require('/lib/math/fib');
fib({ n: args.n })
