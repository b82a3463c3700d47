// A service for the benchmarks of the delivery and the logout: reads the request and answers 200, after so many milliseconds
// as its argument says.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const delayMs = Number(process.argv[2] ?? 0);

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    if (delayMs > 0) setTimeout(() => response.end(), delayMs);
    else response.end();
  });
});
process.once('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ url: `http://127.0.0.1:${port}/auth/logout/demo` });
});
