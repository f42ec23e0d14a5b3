/** Only one literal is understood. */
module.exports = () => [require('./a', './b'), require(...['./a']), require()];
