/* global setTimeout */
// A service for the benchmark of the logout: takes 100 ms to answer.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  request.resume().once('end', () => setTimeout(() => response.end(), 100));
});
server.listen(0, '127.0.0.1', () => {
  process.send({ url: `http://127.0.0.1:${server.address().port}/auth/logout/demo` });
});
process.once('disconnect', () => process.exit());
