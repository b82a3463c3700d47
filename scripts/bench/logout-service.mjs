// A service for the benchmark of delivery: reads the request and answers 200.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  request.resume().once('end', () => response.end());
});
server.listen(0, '127.0.0.1', () => {
  process.send({ url: `http://127.0.0.1:${server.address().port}/auth/logout/demo` });
});
