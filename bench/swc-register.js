// Runs TypeScript as it is compiled for users: `node -r ./bench/swc-register.js file.ts`. tsx keeps the names of inner
// functions, which costs each call more than what is to be measured.
'use strict';
const { transformFileSync } = require('@swc/core');

require.extensions['.ts'] = (module, file) => {
  const jsc = { target: 'es2022', parser: { syntax: 'typescript' } };
  module._compile(transformFileSync(file, { jsc, module: { type: 'commonjs' } }).code, file);
};
