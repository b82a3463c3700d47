export {
  mysqlStorage,
  type MysqlConnection,
  type MysqlFunctions,
  type MysqlPool,
  type MysqlStorageOptions,
} from './storage/mysql.js';
