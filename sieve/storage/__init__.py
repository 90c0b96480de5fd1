"""Stores for index files on local disks, HDFS and S3: read, create, list and delete files."""
