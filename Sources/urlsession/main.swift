print("urlsession")
