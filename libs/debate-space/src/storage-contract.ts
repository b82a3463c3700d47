export { storageContract } from './storage/storage-contract.js';
