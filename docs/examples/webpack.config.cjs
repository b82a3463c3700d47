const { resolve } = require('node:path');
const { IgnorePlugin } = require('webpack');

const absent = /^(@nestjs\/(microservices|websockets)|class-(validator|transformer))(\/|$)/;

module.exports = {
  mode: 'production',
  target: 'node20',
  entry: './dist/main.js',
  externals: { 'nestjs-debate-space/sqlite': 'commonjs nestjs-debate-space/sqlite' },
  optimization: { minimize: false }, // logs and NestJS show names of classes
  output: { path: resolve('bundle'), filename: 'main.cjs', asyncChunks: false },
  plugins: [new IgnorePlugin({ resourceRegExp: absent })],
};
